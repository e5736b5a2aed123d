"""Build the compiled loops, if there is a C compiler; all other settings are in pyproject.toml."""

import sys

if sys.version_info < (3, 9):  # pip reads requires-python only after the build has begun
    sys.exit("neardup needs Python 3.9 or later; this is " + sys.version.split()[0])

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext


class BuildLibrary(build_ext):
    """Build a ctypes library, not a Python module; its file name is the same for every Python."""

    def get_ext_filename(self, fullname: str) -> str:
        return fullname.replace(".", "/") + ".so"

    def get_export_symbols(self, ext: Extension) -> "list[str]":
        return []


class WheelForEveryPython(bdist_wheel):
    def get_tag(self) -> "tuple[str, str, str]":
        return ("py3", "none", super().get_tag()[2])


setup(
    ext_modules=[
        Extension(
            "neardup.runtime.libkernels",
            ["neardup/runtime/kernels.c"],
            extra_compile_args=["-std=gnu99", "-O3"],
            optional=True,
        )
    ],
    cmdclass={"build_ext": BuildLibrary, "bdist_wheel": WheelForEveryPython},
)
