"""The results of a study: statistics, summary, verdict, claims, queries."""
