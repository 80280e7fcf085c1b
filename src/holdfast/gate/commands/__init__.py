"""What commands do beyond their sandbox, judged: files that they change, hosts that they connect to."""
