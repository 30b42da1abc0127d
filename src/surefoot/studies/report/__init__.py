"""The report of a study: one HTML page with tables and figures."""
