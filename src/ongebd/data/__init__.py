"""Labels and predictions."""
