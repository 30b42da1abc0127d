"""An agent meets a known world, and exact totals are kept."""
