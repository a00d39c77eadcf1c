"""What several families ask alike. It knows no check."""
