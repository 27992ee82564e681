"""Kernels that call each other are optimised together, once.

Numba optimises a function with all that it calls and makes machine code of it, before it is called
from another one, where both happen again: on every floor. Here a kernel that others call is only
translated, to a `Part` of theirs; what Python calls is optimised and made machine code, with all
its parts in it.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import binding
from numba.core import compiler, types, typing
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.imputils import lower_constant
from numba.core.registry import CPUDispatcher
from numba.extending import models, register_model

from ._cache import NoCache

__all__ = ["Kernel"]


class _Type(types.Dispatcher):  # type: ignore[misc]
    """Numba's type of a kernel, whose address other kernels do not need to know."""


register_model(_Type)(models.OpaqueModel)


@lower_constant(_Type)  # type: ignore[untyped-decorator]
def _lower(context: Any, builder: Any, kind: _Type, value: Any) -> Any:
    return context.get_dummy_value()


class _Library(JITCodeLibrary):  # type: ignore[misc]
    """Code as it was translated, unless it is optimised `apart`, with the code that it calls."""

    def __init__(self, codegen: Any, name: str, apart: bool) -> None:
        super().__init__(codegen, name)
        self._apart = apart

    def add_llvm_module(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout
        self._final_module.link_in(module)

    def finalize(self) -> None:
        for library in dict.fromkeys(self._linking_libraries):
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalize_dynamic_globals()
        if self._apart:
            self._optimize_final_module()
        self._finalized = True


class _Whole(JITCodeLibrary):  # type: ignore[misc]
    """What Python calls: nobody else calls the code in it, so that it can be taken apart."""

    def _optimize_final_module(self) -> None:
        for function in self._final_module.functions:
            if function.linkage == binding.Linkage.linkonce_odr and "NRT_" not in function.name:
                function.linkage = binding.Linkage.internal
        super()._optimize_final_module()


class _Compiler(compiler.Compiler):  # type: ignore[misc]
    """Numba's, of a `_Whole` unless it is told otherwise."""

    def __init__(self, typingctx: Any, targetctx: Any, library: Any, *given: Any) -> None:
        if library is None:
            library = _Whole(targetctx.codegen(), "whole")
            library.enable_object_caching()
        super().__init__(typingctx, targetctx, library, *given)


class _Part(NamedTuple):
    """A variant of a kernel for those that call it."""

    signature: Any
    fndesc: Any
    library: _Library

    def content(self) -> tuple[Any, ...] | None:
        """Return what is kept on disk, None if that cannot be."""
        self.library._ensure_finalized()
        if self.library.has_dynamic_globals:
            return None
        self.fndesc.typemap = self.fndesc.calltypes = None  # large, and of no use any more
        module = self.library._get_module_for_linking()
        return self.signature, self.fndesc, self.library.name, module.as_bitcode()

    @classmethod
    def rebuild(cls, context: Any, signature: Any, fndesc: Any, name: str, bitcode: bytes) -> _Part:
        """Return what `content` was made of."""
        library = _Library(context.codegen(), name, apart=False)
        library._final_module = binding.parse_bitcode(bitcode)
        library._finalized = True
        return cls(signature, fndesc, library)


class Kernel(CPUDispatcher):  # type: ignore[misc]
    """A function that Python calls, which is compiled as Numba does, and that others contain."""

    def __init__(
        self, function: Callable[..., Any], cache: NoCache, apart: bool, **options: Any
    ) -> None:
        # what C would call is a third of a module, and of no use here
        options |= {"nopython": True, "no_cfunc_wrapper": True}
        super().__init__(function, targetoptions=options, pipeline_class=_Compiler)
        self._cache, self._apart = cache, apart
        self._type = _Type(self)
        self.typingctx._remove_global(self)
        self.typingctx.insert_global(self, self._type)
        self._parts: dict[Any, _Part] = {}

    def _part(self, args: tuple[Any, ...]) -> _Part:
        """Return the variant for arguments of these types."""
        with global_compiler_lock:
            found = self._parts.get(args)
            if found is None:
                key = "part", *args
                found = self._cache.load(key, self.targetctx, _Part.rebuild)
                if found is None:
                    self._cache_misses[key] += 1
                    found = self._translate(args)
                    self._cache.save(key, found.content(), self.targetctx)
                self._parts[args] = found
                self.targetctx.insert_user_function((self, args), found.fndesc, [found.library])
        return found

    def compile(self, sig: Any) -> Any:
        """Compile for a signature, without looking for garbage: what is made stays in use."""
        collects = gc.isenabled()
        gc.disable()
        try:
            return super().compile(sig)
        finally:
            if collects:
                gc.enable()

    @property
    def _numba_type_(self) -> _Type:
        return _Type(self)

    def _translate(self, args: tuple[Any, ...]) -> _Part:
        flags = compiler.Flags()
        self.targetdescr.options.parse_as_flags(flags, self.targetoptions)
        flags.no_compile = flags.no_cpython_wrapper = True
        library = _Library(self.targetctx.codegen(), self.py_func.__qualname__, self._apart)
        given = self.py_func, args, None, flags, self.locals, library
        with self._compiling_counter:
            found = compiler.compile_extra(self.typingctx, self.targetctx, *given)
        return _Part(found.signature, found.fndesc, library)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return how a call with arguments of these types is typed."""
        pysig, args = self._compiler.fold_argument_types(args, kws)
        name = self.py_func.__name__
        template = typing.make_concrete_template(name, name, [self._part(tuple(args)).signature])
        return template, pysig, args, {}

    def get_overload(self, args: Any) -> Any:
        """Return the name by which code for arguments of these types is known."""
        return self, tuple(args)
