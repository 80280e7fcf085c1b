"""Questions to the person at the terminal, and answers from elsewhere."""
