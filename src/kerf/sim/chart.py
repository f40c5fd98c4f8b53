"""chart"""
