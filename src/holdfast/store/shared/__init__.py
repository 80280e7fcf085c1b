"""What processes that share a store keep there together: small documents, and the keys for its API."""
