#include "bridge/generic_rule.h"

#include "bridge/arguments.h"
#include "bridge/dtypes.h"
#include "bridge/sym_node.h"

namespace cresset::bridge {
namespace {

// Meta tensors standing for graph values, sizes pinned to their hints.
class MetaArguments {
 public:
  explicit MetaArguments(Capture& capture) : capture_(capture) {}

  int64_t pin(sym::ExprId e) const {
    const std::optional<int64_t> value = capture_.env().specialize(e, current_reason());
    if (!value) abort_capture("an operator without a native rule on data-dependent sizes");
    return *value;
  }
  at::Tensor tensor(graph::ValueId id) {
    if (auto it = made_.find(id); it != made_.end()) return it->second;
    const graph::TensorType& type = capture_.graph().type(id);
    std::vector<int64_t> sizes, strides;
    for (const sym::ExprId e : type.sizes) sizes.push_back(pin(e));
    for (const sym::ExprId e : type.strides) strides.push_back(pin(e));
    device = type.device;
    return made_[id] = at::detail::empty_strided_meta(sizes, strides, to_torch(type.dtype));
  }

  graph::Device device;

 private:
  Capture& capture_;
  std::unordered_map<graph::ValueId, at::Tensor> made_;
};

graph::TensorType type_of(Capture& capture, const at::Tensor& meta, graph::Device device) {
  graph::TensorType type;
  const std::optional<DType> dtype = from_torch(meta.scalar_type());
  if (!dtype) abort_capture("a result dtype that graphs do not represent");
  type.dtype = *dtype;
  type.device = device;
  for (const int64_t s : meta.sizes()) type.sizes.push_back(capture.env().pool().constant(s));
  for (const int64_t s : meta.strides()) type.strides.push_back(capture.env().pool().constant(s));
  return type;
}

bool has_meta_kernel(const c10::OperatorHandle& handle) {
  return handle.hasKernelForDispatchKey(c10::DispatchKey::Meta) ||
         handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd) ||
         handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional) ||
         handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
}

}  // namespace

std::vector<graph::TensorType> generic_rule(Capture& capture, graph::OpId op, const std::vector<graph::Arg>& args) {
  const std::optional<c10::OperatorHandle> handle = find_operator(op);
  const std::string name(graph::op_name(op));
  if (!handle) abort_capture("unknown operator " + name);
  if (!has_meta_kernel(*handle)) abort_capture(name + " has neither a native rule nor a meta kernel");
  const c10::FunctionSchema& schema = handle->schema();
  for (const c10::Argument& r : schema.returns()) {
    const ArgType type = arg_type(r);
    if (type != ArgType::Tensor && type != ArgType::TensorList)
      abort_capture(name + " returns a number that only data can give");
  }
  MetaArguments metas(capture);
  torch::jit::Stack stack;
  for (size_t i = 0; i < args.size(); ++i) {
    const ArgType type = arg_type(schema.arguments()[i]);
    if (std::holds_alternative<graph::Device>(args[i])) {
      metas.device = std::get<graph::Device>(args[i]);
      stack.emplace_back(c10::Device(c10::kMeta));
      continue;
    }
    stack.push_back(to_torch(
        args[i], type, [&](graph::ValueId v) { return metas.tensor(v); },
        [&](sym::ExprId e) { return metas.pin(e); }));
    // A factory's device argument left open means CPU here, and meta for the inference of its result.
    if (type == ArgType::Device && stack.back().isNone()) stack.back() = c10::Device(c10::kMeta);
  }
  Capture::StepAside aside;
  handle->callBoxed(stack);
  std::vector<graph::TensorType> types;
  for (const c10::IValue& v : stack) {
    if (v.isTensor()) {
      if (v.toTensor().defined()) types.push_back(type_of(capture, v.toTensor(), metas.device));
    } else {
      for (const at::Tensor& t : v.toTensorVector()) types.push_back(type_of(capture, t, metas.device));
    }
  }
  return types;
}

}  // namespace cresset::bridge
