"""What the estimators of `fastfw.sklearn` are made of."""
