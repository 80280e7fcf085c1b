"""The copy sandbox: where no namespaces stand, programs work on a copy of the workspace, confined by Landlock and seccomp."""
