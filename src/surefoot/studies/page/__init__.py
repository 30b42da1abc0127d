"""The report's page: what HTML is made of, a study in words, and the sections that `report` puts together."""
