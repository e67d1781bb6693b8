# SPDX-License-Identifier: Apache-2.0
"""Beeline's command line. The work is done by the C++ programs; this package runs them and shows their results."""

__version__ = "0.1.0"
