"""The experiment: its config, its workloads, and the plan that follows from them."""
