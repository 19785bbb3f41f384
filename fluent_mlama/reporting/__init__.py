"""From rank dumps to tables, graphs, intervals, audit and report."""
