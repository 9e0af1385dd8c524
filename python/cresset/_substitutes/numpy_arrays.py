"""Arrays of numpy in later calls, like the arrays made during the capture (src/frontend/values/constant_arrays.h)."""


def copy_of_array(array):
    """A new array with the same contents and, for arrays without gaps, the same order in memory."""
    return array.copy(order="K")


def place_of_view(root, view):
    """The position of `view` in `root`, for view_of_array(); None for a `root` without C order."""
    if not root.flags.c_contiguous:
        return None
    offset = view.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    return offset, view.shape, view.strides, view.dtype, bool(view.flags.writeable)


def view_of_array(root, place):
    offset, shape, strides, dtype, writeable = place
    view = type(root)(shape, dtype, buffer=root, offset=offset, strides=strides)
    view.flags.writeable = writeable
    return view
