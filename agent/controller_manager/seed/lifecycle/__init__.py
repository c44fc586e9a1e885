"""Seeds whose gardenlets do not report any more are said to be unknown, and after a while their Shoots are, too."""
