"""What communication and training steps cost by the alpha-beta model: links, collectives, phases, tiers."""
