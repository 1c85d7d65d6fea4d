"""This process among others: joining a job, agreeing on programs, forks, signals, the end."""
