"""What came of a study: statistics, summary, verdict, claims, queries."""
