"""What a Secret asks for, holds and needs: pure."""
