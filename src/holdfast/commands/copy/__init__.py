"""The copy sandbox: where namespaces are not available, programs work on a copy of the workspace, confined by Landlock and seccomp."""
