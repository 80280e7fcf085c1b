"""What `holdfast policy` offers beyond a decision: examples, explanations, lint, diff and backtest."""
