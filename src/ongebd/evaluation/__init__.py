"""How good a set of boundaries is, and what a score hides."""
