"""What a measured run should reach on the machine that was found, how well it fits, and what may explain the rest."""
