#pragma once
#include <ATen/core/dispatch/Dispatcher.h>

#include <string_view>
#include <vector>

namespace cresset::bridge {

// The registered operators of one name ("aten::add"), each an overload, in the order of their registration. The
// dispatcher itself finds an operator only by its whole name, or copies the names of all of them.
std::vector<c10::OperatorHandle> overloads_of(std::string_view name);
// From here on the operators are known by their names: about a third of a millisecond, for thousands of them.
void watch_overloads();

}  // namespace cresset::bridge
