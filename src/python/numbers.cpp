// Numbers in tensors, and facts stated about them, during a capture.
#include "python/numbers.h"

#include <unordered_set>

#include "bridge/aten/op_schema.h"
#include "bridge/capture/capture.h"
#include "bridge/capture/capture_abort.h"
#include "bridge/capture/sym_node.h"
#include "frontend/cpython/py_objects.h"
#include "frontend/values/number_classes.h"
#include "frontend/values/symbols.h"

namespace py = pybind11;

namespace cresset::python {
namespace {

// Returns a tensor's elements in order, as symbols, or None where they are not symbolic.
py::object read_numbers(const at::Tensor& tensor) {
  bridge::Capture* capture = bridge::Capture::current();
  if (capture == nullptr || capture->closed()) return py::none();
  bridge::TraceTensor* trace = bridge::TraceTensor::from(tensor);
  if (trace == nullptr || !at::isIntegralType(tensor.scalar_type(), false)) return py::none();
  capture->set_location();
  const auto numbers = capture->recorder().symbolic_elements(capture->value_of(*trace));
  if (!numbers) return py::none();
  py::list out;
  for (const sym::ExprId number : *numbers) out.append(py::cast(bridge::SymNode::make_int(capture->env_ptr(), number)));
  frontend::adopt(out.ptr());
  return out;
}

// Whether the strides of the tensor's dimensions of size 1 are known before it has memory. They may depend on those of
// arguments, which are then guarded.
bool lays_out(const at::Tensor& tensor) {
  bridge::Capture* capture = bridge::Capture::current();
  if (capture == nullptr || capture->closed()) return false;
  const bridge::TraceTensor* trace = bridge::TraceTensor::from(tensor);
  if (trace == nullptr || !capture->storages().lays_out(*trace)) return false;
  try {
    capture->storages().hold_strides(*trace);
  } catch (const bridge::CaptureAbort&) {  // an argument has strides that the program does not express
    return false;
  }
  return true;
}

// The strides of a tensor which the capture copies and which is a view in eager mode, as reshape() makes it at a size
// of 1; guards keep the program to these sizes. None: eager mode copies the tensor, too, which is guarded where sizes
// of 0 and 1 decide.
py::object strides_of_view(const at::Tensor& tensor) {
  bridge::Capture* capture = bridge::Capture::current();
  if (capture == nullptr || capture->closed()) return py::none();
  const bridge::TraceTensor* trace = bridge::TraceTensor::from(tensor);
  if (trace == nullptr) return py::none();
  capture->set_location();
  std::unordered_set<uint32_t> all;
  for (uint32_t i = 0; i < capture->storages().size(); ++i) all.insert(i);
  const std::optional<bridge::AsView> view = capture->storages().as_view(*trace, all);
  if (!view) return py::none();
  py::tuple out(view->strides.size());
  for (size_t d = 0; d < out.size(); ++d) out[d] = capture->env().pool().const_value(view->strides[d]);
  return out;
}

// Evaluates the condition. A condition which depends on data or on a later call is assumed to hold and asserted at run
// time. message: a callable for the error's string, or None.
bool expect(const py::object& condition, const py::object& message) {
  const c10::SymNode node = frontend::node_of(condition.ptr());
  auto* ours = dynamic_cast<bridge::SymNode*>(node.get());
  if (ours == nullptr) return node->expect_true(__FILE__, __LINE__);
  if (message.is_none()) return ours->expect(__FILE__, __LINE__, nullptr);
  return ours->expect(__FILE__, __LINE__, [&] {
    bridge::Capture* capture = bridge::Capture::current();
    ++capture->recording;  // the string names symbols; reading a number would break the graph
    const py::object text = py::str(message());
    --capture->recording;
    return py::cast<std::string>(text);
  });
}

at::Tensor call(const std::string& op, torch::jit::Stack stack) {
  const std::optional<c10::OperatorHandle> handle = bridge::find_operator(graph::op_id(op));
  if (!handle) throw py::key_error(op);
  handle->redispatchBoxed(c10::DispatchKeySet(bridge::kTraceKey), &stack);
  return stack.back().toTensor();
}

c10::IValue as_float(py::handle number) {
  if (frontend::is_symfloat(number.ptr())) return c10::SymFloat(frontend::node_of(number.ptr()));
  return py::cast<double>(py::float_(py::reinterpret_borrow<py::object>(number)));
}

// Calls a random operator on a tensor like `like` with symbolic numbers, where the operator's schema has plain numbers.
at::Tensor drawn(const std::string& op, const at::Tensor& like, const py::args& numbers) {
  torch::jit::Stack stack = {like};
  for (const py::handle number : numbers) stack.push_back(as_float(number));
  stack.emplace_back();  // torch's own generator
  return call(op, std::move(stack));
}

// The same for an operator of a tensor and numbers, without derivatives.
at::Tensor called(const std::string& op, const at::Tensor& input, const py::args& numbers) {
  torch::jit::Stack stack = {input};
  for (const py::handle number : numbers) {
    if (frontend::is_symint(number.ptr()))
      stack.emplace_back(py::cast<c10::SymInt>(number));
    else if (PyLong_CheckExact(number.ptr()))
      stack.emplace_back(py::cast<int64_t>(number));
    else
      stack.push_back(as_float(number));
  }
  return call(op, std::move(stack));
}

}  // namespace

void init_numbers(py::module_& m) {
  m.def("read_numbers", &read_numbers);
  m.def("lays_out", &lays_out);
  m.def("strides_of_view", &strides_of_view);
  m.def("expect", &expect);
  m.def("drawn", &drawn);
  m.def("called", &called);
}

}  // namespace cresset::python
