# SPDX-License-Identifier: Apache-2.0
"""Measurements in Python, on the ranks of a world: `beeline bench` starts them, and they print JSON lines."""
