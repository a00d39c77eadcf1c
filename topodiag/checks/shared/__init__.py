"""What checks of several subjects ask alike. Decides nothing itself, and knows no check."""
