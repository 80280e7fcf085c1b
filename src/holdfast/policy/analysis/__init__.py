"""Policy analysis behind `holdfast policy`: examples, explanations, lint, diff and backtest."""
