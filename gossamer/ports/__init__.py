"""The three ports: what Gossamer stands on, said as promises. Each engine is one folder of adapters that keep them."""
