"""Labels: the levels that a policy gives to results, and how it asks for them."""
