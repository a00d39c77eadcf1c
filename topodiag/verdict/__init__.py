"""The room where findings of one case meet: identity, timeline, rules, price, verdict. Today it holds its interface."""
