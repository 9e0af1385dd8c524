// Another compiler given by the user, a Python function: it is given each graph.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>

#include "compile/graph_taker.h"

namespace cresset::python {

// `take` receives a description of a graph (a dict, python/cresset/_api/graph_modules.py) and returns the number by
// which the operator `cresset::run_graph` finds its code.
std::shared_ptr<driver::GraphTaker> graph_taker(pybind11::object take);

}  // namespace cresset::python
