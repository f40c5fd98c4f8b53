"""Many runs of one scenario: policies by traces by seeds by prices."""
