"""What AMD's tools and driver say of GPUs: rocm-smi, amd-smi, the KFD topology of sysfs, and tests of copies."""
