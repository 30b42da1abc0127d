"""The TRUE worlds: tabular models, exact values, families by name, Gymnasium environments."""
