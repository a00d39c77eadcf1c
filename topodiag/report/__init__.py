"""The outputs: one file each behind one interface. They translate a Result and decide nothing."""
