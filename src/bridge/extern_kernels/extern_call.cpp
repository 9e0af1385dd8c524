#include "bridge/extern_kernels/extern_call.h"

#include <ATen/ScalarOps.h>
#include <c10/core/ScalarType.h>
#include <fmt/format.h>

#include <mutex>
#include <unordered_map>

#include "base/check.h"
#include "bridge/aten/dtypes.h"
#include "bridge/aten/overloads.h"
#include "bridge/capture/arguments.h"
#include "bridge/executor/extern_arguments.h"
#include "ops/op_def.h"
#include "ops/op_traits.h"

namespace cresset::bridge {
namespace {

using runtime::ExternArg;
using runtime::SizeRef;
using runtime::TensorId;
using TensorIdList = std::vector<std::optional<TensorId>>;

c10::OperatorName split_name(std::string_view name) {
  const size_t dot = name.find('.', name.find("::"));
  if (dot == std::string_view::npos) return {std::string(name), ""};
  return {std::string(name.substr(0, dot)), std::string(name.substr(dot + 1))};
}

int count_tensor_returns(const c10::FunctionSchema& schema) {
  for (const c10::Argument& r : schema.returns())
    if (r.type()->kind() != c10::TypeKind::TensorType) return -1;
  return static_cast<int>(schema.returns().size());
}

// Whether `out` takes the arguments of `plain`, followed by a written tensor for each result.
bool is_out_variant(const c10::FunctionSchema& plain, const c10::FunctionSchema& out, size_t results) {
  const auto& a = plain.arguments();
  const auto& b = out.arguments();
  if (b.size() != a.size() + results) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i].name() != b[i].name() || *a[i].type() != *b[i].type()) return false;
  for (size_t i = a.size(); i < b.size(); ++i) {
    if (b[i].alias_info() == nullptr || !b[i].alias_info()->isWrite()) return false;
    if (b[i].type()->kind() != c10::TypeKind::TensorType) return false;
  }
  return true;
}

// Accepts only out-variants with a kernel for the backend: generated kernels compute a temporary and copy it.
std::optional<c10::OperatorHandle> find_out_variant(const c10::OperatorHandle& op, int results, c10::DispatchKey key) {
  if (results <= 0 || op.schema().is_mutable()) return std::nullopt;
  for (const c10::OperatorHandle& candidate : overloads_of(op.operator_name().name))
    if (candidate.hasSchema() && is_out_variant(op.schema(), candidate.schema(), static_cast<size_t>(results)) &&
        candidate.hasKernelForDispatchKey(key))
      return candidate;
  return std::nullopt;
}

// "aten::index_copy" has "aten::index_copy_".
std::optional<c10::OperatorHandle> find_in_place_variant(const c10::OperatorHandle& op) {
  const c10::OperatorName& name = op.operator_name();
  const auto found = c10::Dispatcher::singleton().findSchema({name.name + "_", name.overload_name});
  if (!found) return std::nullopt;
  const auto &a = op.schema().arguments(), &b = found->schema().arguments();
  const auto alike = [](const c10::Argument& x, const c10::Argument& y) { return *x.type() == *y.type(); };
  if (!std::equal(a.begin(), a.end(), b.begin(), b.end(), alike)) return std::nullopt;
  return b[0].alias_info() != nullptr && b[0].alias_info()->isWrite() ? found : std::nullopt;
}

std::unique_ptr<AtenOp> look_up(graph::OpId op) {
  auto handle = c10::Dispatcher::singleton().findSchema(split_name(graph::op_name(op)));
  if (!handle) return nullptr;
  auto found = std::make_unique<AtenOp>(*handle);
  found->tensor_returns = count_tensor_returns(handle->schema());
  found->out = find_out_variant(*handle, found->tensor_returns, c10::DispatchKey::CPU);
  found->cuda_out = find_out_variant(*handle, found->tensor_returns, c10::DispatchKey::CUDA);
  found->in_place = find_in_place_variant(*handle);
  return found;
}

// Whether all tensors of a call are on devices of the kind.
bool runs_on(c10::DeviceType kind, const runtime::ExternCall& call, const BoundContext& context) {
  bool on_kind = true;
  const auto look = [&](TensorId id) { on_kind &= !id.valid() || context.slot(id).memory->device().type() == kind; };
  for (const TensorId id : call.results) look(id);
  for_each_argument(call, look);
  return on_kind;
}

// Whether the operator is torch's or ours, and draws no random numbers.
bool is_repeatable(const runtime::ExternCall& call) {
  const ops::OpTraits traits = ops::traits(call.op);
  if (traits.foreign) return false;
  if (!traits.draws) return true;
  if (traits.dropout < 0 || static_cast<size_t>(traits.dropout) >= call.args.size()) return false;
  const auto* dropout = std::get_if<double>(&call.args[static_cast<size_t>(traits.dropout)]);
  return dropout != nullptr && *dropout == 0;
}

// ---- arguments

struct Convert {
  const c10::Type& type;
  const BoundContext& context;

  bool wants(c10::TypeKind kind) const { return type.kind() == kind; }
  // A number in the place of a tensor: it does not promote dtypes within its category.
  static c10::IValue wrapped_number(const at::Scalar& value) { return at::native::wrapped_scalar_tensor(value); }
  const c10::Type* element() const {
    const auto* list = type.castRaw<c10::ListType>();
    return list == nullptr ? nullptr : list->getElementType().get();
  }
  template <class T>
  c10::IValue unsupported(const T&) const {
    CRESSET_CHECK(false, fmt::format("an argument of type {} cannot be made from what the program holds", type.str()));
  }

  c10::IValue operator()(const graph::None&) const { return {}; }
  c10::IValue operator()(TensorId id) const { return unsupported(id); }  // tensors are supplied at each call
  c10::IValue operator()(const TensorIdList& ids) const { return unsupported(ids); }
  c10::IValue operator()(SizeRef ref) const {
    const int64_t value = context.size(ref);
    if (wants(c10::TypeKind::TensorType)) return wrapped_number(value);
    if (wants(c10::TypeKind::FloatType)) return static_cast<double>(value);
    if (wants(c10::TypeKind::BoolType)) return value != 0;
    if (element() != nullptr) return c10::List<int64_t>({value});
    return value;
  }
  c10::IValue operator()(const std::vector<SizeRef>& refs) const {
    const std::vector<int64_t> values = context.sizes(refs);
    if (element() != nullptr && element()->kind() == c10::TypeKind::FloatType)
      return c10::List<double>(c10::ArrayRef<double>(std::vector<double>(values.begin(), values.end())));
    if (element() != nullptr && element()->kind() == c10::TypeKind::NumberType) return scalar_list(values);
    return c10::List<int64_t>(c10::ArrayRef<int64_t>(values));
  }
  c10::IValue operator()(double value) const {
    if (wants(c10::TypeKind::TensorType)) return wrapped_number(value);
    if (wants(c10::TypeKind::IntType) || wants(c10::TypeKind::BoolType)) return unsupported(value);
    return value;
  }
  c10::IValue operator()(bool value) const {
    if (wants(c10::TypeKind::TensorType)) return wrapped_number(value);
    if (wants(c10::TypeKind::IntType)) return static_cast<int64_t>(value);
    return value;
  }
  c10::IValue operator()(const std::vector<double>& values) const {
    if (element() != nullptr && element()->kind() == c10::TypeKind::NumberType) return scalar_list(values);
    return c10::List<double>(c10::ArrayRef<double>(values));
  }
  c10::IValue operator()(const std::vector<bool>& values) const {
    c10::List<bool> list;
    for (const bool value : values) list.push_back(value);
    return list;
  }
  c10::IValue operator()(const std::string& text) const { return text; }
  c10::IValue operator()(DType dtype) const { return static_cast<int64_t>(to_torch(dtype)); }
  c10::IValue operator()(graph::StridedLayout) const { return static_cast<int64_t>(at::kStrided); }
  c10::IValue operator()(const graph::Device& device) const { return to_torch(device); }
  c10::IValue operator()(graph::MemoryFormat format) const { return static_cast<int64_t>(to_torch(format)); }

  template <class T>
  static c10::IValue scalar_list(const std::vector<T>& values) {
    c10::List<c10::Scalar> list;
    for (const T value : values) list.push_back(c10::Scalar(value));
    return list;
  }
};

// ---- the boxed call

class BoxedCall final : public ExternKernel {
 public:
  BoxedCall(const runtime::ExternCall& call, const AtenOp& op, const BoundContext& context)
      : call_(call),
        op_(op),
        name_(graph::op_name(call.op)),
        storage_offset_(storage_offset_argument(op.handle.schema())) {
    const auto& formal = op.handle.schema().arguments();
    CRESSET_CHECK(call.args.size() <= formal.size(), fmt::format("{}: too many arguments", name_));
    arguments_.reserve(formal.size());
    for (size_t i = 0; i < formal.size(); ++i) bind_argument(i, formal[i], context);
    note_unwanted();
    own_memory_ = all_planned(context);
    on_cpu_ = runs_on(c10::kCPU, call, context);
    out_ = on_cpu_ ? op.out : op.cuda_out;
    into_planned_ = out_.has_value() && own_memory_;
    const ops::OpDef* def = ops::find(call.op);
    continues_first_ = def != nullptr && def->starts_as_first && own_memory_ && op.in_place.has_value() &&
                       runs_on(c10::kCUDA, call, context);
    places_ = own_memory_ && on_cpu_ && context.arena_device().is_cpu();
    only_enqueues_ = numbers_.empty() && runs_on(c10::kCUDA, call, context) && is_repeatable(call);
  }

  bool only_enqueues() const override { return only_enqueues_; }
  bool allocates_results() const override { return !into_planned_ && !continues_first_; }

  void run(BoundContext& context) override {
    torch::jit::Stack stack;
    stack.reserve(arguments_.size() + call_.results.size());
    stack.assign(arguments_.begin(), arguments_.end());
    for (const auto& [position, id] : tensors_) stack[position] = given(context.tensor(id));
    for (const auto& [position, id] : numbers_) stack[position] = context.tensor(id).item<double>();
    for (const uint32_t position : lists_) stack[position] = list_argument(position, context);
    if (storage_offset_) count_from_storage(stack, *storage_offset_);
    if (!places_) return call(stack, context);
    const PlaceResults placed(into_planned_ ? PlaceResults::Places() : context.places(call_.results), context.gaps());
    call(stack, context);
    check_places(placed, name_);
  }

 private:
  void call(torch::jit::Stack& stack, BoundContext& context) const {
    if (continues_first_) {
      const at::Tensor out = context.planned(call_.results[0]), first = stack[0].toTensor();
      if (out.const_data_ptr() != first.const_data_ptr()) at::Tensor(out).copy_(first);
      stack[0] = out;
      op_.in_place->callBoxed(stack);
    } else if (into_planned_) {
      for (const TensorId id : call_.results) stack.emplace_back(context.planned(id));
      out_->callBoxed(stack);
    } else {
      op_.handle.callBoxed(stack);
      deliver(stack, context);
    }
    stack.clear();
  }

  void bind_argument(size_t i, const c10::Argument& formal, const BoundContext& context) {
    if (i >= call_.args.size()) {
      CRESSET_CHECK(formal.default_value().has_value(),
                    fmt::format("{}: argument {} is missing", name_, formal.name()));
      arguments_.push_back(*formal.default_value());
      return;
    }
    const ExternArg& arg = call_.args[i];
    if (const auto* id = std::get_if<TensorId>(&arg)) {
      const bool is_number = formal.type()->kind() == c10::TypeKind::FloatType;
      (is_number ? numbers_ : tensors_).emplace_back(static_cast<uint32_t>(i), *id);
      arguments_.emplace_back();
    } else if (std::holds_alternative<TensorIdList>(arg)) {
      lists_.push_back(static_cast<uint32_t>(i));
      arguments_.emplace_back();
    } else {
      arguments_.push_back(to_ivalue(arg, *formal.type(), context));
    }
  }

  void note_unwanted() {
    const std::optional<int> position = op_.handle.schema().argumentIndexWithName("output_mask");
    if (!position || !arguments_[static_cast<size_t>(*position)].isBoolList()) return;
    const c10::List<bool> mask = arguments_[static_cast<size_t>(*position)].toBoolList();
    for (size_t i = 0; i < mask.size(); ++i) unwanted_ |= uint64_t{!mask[i]} << i;
  }

  // ATen's as_strided_scatter refuses tensors that require gradients in most layouts, also below autograd.
  at::Tensor given(const at::Tensor& tensor) const {
    return storage_offset_ && tensor.requires_grad() ? tensor.variable_data() : tensor;
  }

  // Whether all results have planned memory. The out-variant writes all of its results, so each needs a place.
  bool all_planned(const BoundContext& context) const {
    if (call_.results.size() != static_cast<size_t>(op_.tensor_returns)) return false;
    for (const TensorId id : call_.results)
      if (!id.valid() || !context.has_planned_memory(id)) return false;
    return true;
  }

  c10::IValue list_argument(uint32_t position, const BoundContext& context) const {
    const auto& ids = std::get<TensorIdList>(call_.args[position]);
    const c10::Type* type = op_.handle.schema().arguments()[position].type().get();
    if (const auto* optional = type->castRaw<c10::OptionalType>()) type = optional->getElementType().get();
    if (type->castRaw<c10::ListType>()->getElementType()->kind() == c10::TypeKind::OptionalType) {
      c10::List<std::optional<at::Tensor>> list;
      list.reserve(ids.size());
      for (const std::optional<TensorId>& id : ids)
        list.push_back(id ? std::optional<at::Tensor>(context.tensor(*id)) : std::nullopt);
      return list;
    }
    c10::List<at::Tensor> list;
    list.reserve(ids.size());
    for (const std::optional<TensorId>& id : ids) list.push_back(id ? context.tensor(*id) : at::Tensor());
    return list;
  }

  // Delivers every returned tensor as a result; lists deliver their elements. Numbers and undefined tensors are
  // skipped.
  void deliver(torch::jit::Stack& stack, BoundContext& context) const {
    size_t next = 0;
    const auto give = [&](at::Tensor tensor) {
      CRESSET_CHECK(next < call_.results.size(), fmt::format("{} returned more tensors than planned", name_));
      const TensorId id = call_.results[next++];
      if (id.valid()) context.adopt(id, std::move(tensor), name_);
    };
    for (size_t i = 0; i < stack.size(); ++i) {
      c10::IValue& value = stack[i];
      if (value.isTensor()) {
        const bool wanted = (unwanted_ >> i & 1) == 0;  // some operators return results which output_mask excludes
        if (wanted && value.toTensor().defined()) give(std::move(value).toTensor());
      } else if (value.isTensorList()) {
        for (at::Tensor& tensor : value.toTensorVector()) give(std::move(tensor));
      }
    }
    CRESSET_CHECK(next == call_.results.size(), fmt::format("{} returned fewer tensors than planned", name_));
  }

  const runtime::ExternCall& call_;
  const AtenOp& op_;
  const std::string_view name_;
  const std::optional<size_t> storage_offset_;          // position of the argument
  std::vector<c10::IValue> arguments_;                  // without tensors
  std::vector<std::pair<uint32_t, TensorId>> tensors_;  // argument position, tensor
  std::vector<std::pair<uint32_t, TensorId>> numbers_;  // the same for tensors in the place of a float
  std::vector<uint32_t> lists_;                         // positions of tensor lists
  uint64_t unwanted_ = 0;                               // bit mask of results by position
  std::optional<c10::OperatorHandle> out_;
  bool own_memory_ = false, into_planned_ = false;
  bool continues_first_ = false;  // the result is written over argument 0, or over a copy of it
  bool on_cpu_ = true;
  bool places_ = false;  // allocations of the operator may lie in the arena
  bool only_enqueues_ = false;
};

}  // namespace

const AtenOp* AtenOp::find_or_null(graph::OpId op) {
  static std::mutex mutex;
  static auto* const found = new std::unordered_map<graph::OpId, std::unique_ptr<AtenOp>>;
  const std::lock_guard lock(mutex);
  std::unique_ptr<AtenOp>& entry = (*found)[op];
  if (entry == nullptr) entry = look_up(op);
  return entry.get();
}

const AtenOp& AtenOp::find(graph::OpId op) {
  const AtenOp* found = find_or_null(op);
  CRESSET_CHECK(found != nullptr, fmt::format("the dispatcher knows no operator {}", graph::op_name(op)));
  return *found;
}

c10::IValue to_ivalue(const ExternArg& arg, const c10::Type& type, const BoundContext& context) {
  const auto* optional = type.castRaw<c10::OptionalType>();
  return std::visit(Convert{optional == nullptr ? type : *optional->getElementType(), context}, arg);
}

void check_places(const PlaceResults& placed, std::string_view op) {
  CRESSET_CHECK(!placed.any_taken(), fmt::format("{} keeps what it returned", op));
}

std::unique_ptr<ExternKernel> bind_boxed_call(const runtime::ExternCall& call, const BoundContext& context) {
  return std::make_unique<BoxedCall>(call, AtenOp::find(call.op), context);
}

std::unique_ptr<ExternKernel> bind_extern_call(const runtime::ExternCall& call, const BoundContext& context) {
  if (auto draw = bind_philox_draw(call, context)) return draw;
  if (runs_on(c10::kCUDA, call, context)) {
    if (auto product = bind_few_rows_product(call, context)) return product;
    if (auto product = bind_padded_product(call, context)) return product;
    if (auto gradient = bind_embedding_gradient(call, context)) return gradient;
    if (auto write = bind_slice_write(call, context)) return write;
  }
  if (!runs_on(c10::kCPU, call, context)) return bind_boxed_call(call, context);
  if (auto linear = bind_linear_call(call, context)) return linear;
  if (auto convolution = bind_convolution_call(call, context)) return convolution;
  if (auto gather = bind_gather_call(call, context)) return gather;
  if (auto scatter = bind_scatter_call(call, context)) return scatter;
  if (auto pool = bind_pool_call(call, context)) return pool;
  return bind_boxed_call(call, context);
}

}  // namespace cresset::bridge
