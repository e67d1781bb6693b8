# SPDX-License-Identifier: Apache-2.0
from beeline.cli import main

main()
