"""NCCL's topology as XML trees: detected on a node, merged with a file, read from a print; changed, cleaned, repaired,
compared, and completed for virtual machines. What NCCL decides on such a tree is the package above."""
