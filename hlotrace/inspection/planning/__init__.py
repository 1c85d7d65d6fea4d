"""What a program needs of chips that need not be here, compiled or from its trace."""
