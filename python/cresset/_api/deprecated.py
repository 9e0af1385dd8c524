"""Old public names. Each still works, with one DeprecationWarning in a process, which tells the present name."""

import warnings

OPTIONS = {
    "entry_limit": "cache_entry_limit",
    "freeze": "freezing",
    "guard_filter": "guard_filter_fn",
    "symbolic_numbers": "capture_scalar_outputs",
}
STATS = {
    "native_stretches": "eager_fallbacks",
    "recorded_backward_passes": "double_backward_fallbacks",
    "variants_checked": "cache_entries_checked",
}
SEGMENT = {"facts": "state_guards"}  # keys of the dicts in Explanation.segments
_warned = set()


def warn(old, new, stacklevel=3):
    if old not in _warned:
        _warned.add(old)
        warnings.warn(f"cresset: {old} is deprecated: use {new}", DeprecationWarning, stacklevel=stacklevel)


def option(name, stacklevel=5):
    """The present name of an option of cresset.compile."""
    new = OPTIONS.get(name, name)
    if new != name:
        warn(f"option {name!r}", repr(new), stacklevel)
    return new


def options(settings):
    """Settings of cresset.explain under the present names."""
    return {option(name): value for name, value in settings.items()}


class Renamed(dict):
    """A dict whose items can be read under their old names too."""

    def __init__(self, items, new_names, owner):
        super().__init__(items)
        self._new_names, self._owner = new_names, owner

    def __missing__(self, key):
        if key not in self._new_names:
            raise KeyError(key)
        new = self._new_names[key]
        warn(f"{self._owner}[{key!r}]", f"{self._owner}[{new!r}]")
        return self[new]

    def get(self, key, default=None):
        new = self._new_names.get(key, key)
        if new != key:
            warn(f"{self._owner}[{key!r}]", f"{self._owner}[{new!r}]")
        return super().get(new, default)


def attribute(owner, old, new):
    """A property for the old name of an attribute of class ``owner``."""

    def get(self):
        warn(f"{owner}.{old}", f"{owner}.{new}")
        return getattr(self, new)

    return property(get, doc=f"Deprecated name of ``{new}``.")
