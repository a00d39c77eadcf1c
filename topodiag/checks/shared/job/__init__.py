"""What several families ask of a job."""
