"""The jobs: what an ingested landing becomes."""
