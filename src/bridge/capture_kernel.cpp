#include "bridge/capture_kernel.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/library.h>

#include <atomic>
#include <deque>
#include <mutex>

#include "bridge/arguments.h"
#include "bridge/capture.h"
#include "bridge/float_scalars.h"
#include "bridge/generator_watch.h"
#include "bridge/generic_rule.h"
#include "bridge/native_call.h"
#include "bridge/other_layouts.h"
#include "bridge/overloads.h"
#include "bridge/own_derivatives.h"
#include "bridge/random_fills.h"
#include "bridge/recurrent_layers.h"
#include "bridge/sym_node.h"
#include "bridge/symbolic_composites.h"
#include "ops/op_def.h"
#include "ops/view_slice.h"

namespace cresset::bridge {
namespace {

using graph::Arg;
using graph::ValueId;
using torch::jit::Stack;

thread_local const OpEntry* current_op = nullptr;

sym::Reason reason_now() {
  sym::Reason reason;
  if (current_op != nullptr) reason.op = current_op->name;
  Capture* capture = Capture::current();
  if (capture != nullptr && capture->closed()) return reason;
  if (capture != nullptr && current_op == nullptr) capture->set_location();
  if (capture != nullptr) reason.location = capture->graph().locations[capture->graph().current_location];
  return reason;
}

// One call of one operator under capture.
class Call {
 public:
  Call(const OpEntry& entry, Capture& capture, Stack& stack)
      : entry_(entry), capture_(capture), stack_(stack), count_(entry.arg_types.size()), outer_op_(current_op) {
    current_op = &entry_;
    ++capture_.recording;
  }
  ~Call() {
    current_op = outer_op_;
    --capture_.recording;
  }

  void run() {
    if (scalar_is_tensor()) return;
    switch (entry_.op_class) {
      case OpEntry::Class::Functional:
        return functional();
      case OpEntry::Class::View:
        return view();
      case OpEntry::Class::InPlace:
        return in_place();
      case OpEntry::Class::InPlaceView:
        return in_place_view();
      case OpEntry::Class::Out:
        return out();
      case OpEntry::Class::Opaque:
        abort_capture(entry_.name + " writes in a way that has no functional form");
    }
  }

 private:
  const c10::IValue& argument(size_t i) const { return stack_[stack_.size() - count_ + i]; }

  std::vector<Arg> arguments(size_t count) {
    std::vector<Arg> args;
    args.reserve(count);
    capture_.float_numbers.clear();
    for (size_t i = 0; i < count; ++i) args.push_back(to_graph(capture_, argument(i), entry_.arg_types[i]));
    if (!capture_.float_numbers.empty()) give_dtype(args);
    if (count > 0 && entry_.arg_types[0] == ArgType::Tensor) number_as_tensor(args);
    return args;
  }

  // A number on its way as a tensor, where it is the only tensor that the operator is given: a constant, or filled with
  // what is known of it (the tensor on its way holds nothing then).
  void number_as_tensor(std::vector<Arg>& args) {
    if (std::holds_alternative<ValueId>(args[0]) || std::holds_alternative<graph::None>(args[0])) return;
    bool others = false;
    graph::Graph::for_each_value(args, [&](const ValueId&) { others = true; });
    if (others) return;
    const bool symbolic = capture_.symbolic_number && capture_.symbolic_number(argument(0).toTensor());
    if (!symbolic && !is_float_among_numbers(args)) {
      args[0] = value_of(capture_, argument(0).toTensor());
      return;
    }
    const DType dtype = std::holds_alternative<bool>(args[0])     ? DType::Bool
                        : std::holds_alternative<double>(args[0]) ? capture_.default_dtype
                                                                  : DType::I64;
    args[0] = capture_.call(graph::op_id("aten::scalar_tensor"),
                            {args[0], dtype, graph::None{}, graph::None{}, graph::None{}})[0];
  }

  // torch.add(1.5, 2): numbers alone give the default dtype, where a tensor in the first one's place would give its
  // own.
  bool is_float_among_numbers(const std::vector<Arg>& args) const {
    if (!std::holds_alternative<double>(args[0])) return false;
    for (size_t i = 1; i < args.size(); ++i)
      if (entry_.arg_types[i] == ArgType::Tensor && !std::holds_alternative<graph::None>(args[i])) return true;
    return false;
  }

  // A number takes the dtype of the tensors beside it when these are floats, else the default one.
  void give_dtype(std::vector<Arg>& args) {
    const std::vector<ValueId> numbers = std::exchange(capture_.float_numbers, {});
    const auto is_number = [&](ValueId v) { return std::find(numbers.begin(), numbers.end(), v) != numbers.end(); };
    std::optional<DType> dtype;
    bool scalars = true;  // the other tensors
    graph::Graph::for_each_value(args, [&](const ValueId& v) {
      const DType other = capture_.graph().type(v).dtype;
      scalars = scalars && (is_number(v) || capture_.graph().type(v).rank() == 0);
      if (!is_number(v) && is_float(other)) dtype = dtype ? promote(*dtype, other) : other;
      if (!is_number(v) && category(other) == DTypeCategory::Complex) abort_capture("a float beside complex numbers");
    });
    if (dtype.value_or(capture_.default_dtype) == DType::F64) return;
    // In f32 it would be the number that decides on the result's dtype, in their own it would be rounded.
    if (scalars && dtype && compute_dtype(*dtype) != *dtype) abort_capture("a float beside a number in half precision");
    for (Arg& arg : args)
      if (const auto* v = std::get_if<ValueId>(&arg); v != nullptr && is_number(*v))
        arg = capture_.call(graph::op_id("aten::_to_copy"),
                            {*v, compute_dtype(dtype.value_or(capture_.default_dtype)), graph::None{}, graph::None{},
                             graph::None{}, false, graph::None{}})[0];
  }

  void finish(std::vector<c10::IValue> results) {
    torch::jit::drop(stack_, count_);
    for (c10::IValue& r : results) stack_.push_back(std::move(r));
  }

  // Wraps graph values by the schema's returns: a Tensor[] takes what the others leave. absent: by position.
  std::vector<c10::IValue> wrap(const std::vector<at::Tensor>& tensors, uint64_t absent = 0) const {
    const auto& returns = entry_.functional_handle->schema().returns();
    std::vector<c10::IValue> out;
    size_t next = 0;
    for (size_t i = 0; i < returns.size(); ++i) {
      if ((absent >> i & 1) != 0) {
        out.emplace_back(at::Tensor());
      } else if (arg_type(returns[i]) == ArgType::TensorList) {
        const size_t take = tensors.size() - next - (returns.size() - i - 1);
        out.emplace_back(
            c10::List<at::Tensor>(std::vector<at::Tensor>(tensors.begin() + next, tensors.begin() + next + take)));
        next += take;
      } else {
        out.emplace_back(next < tensors.size() ? tensors[next] : at::Tensor());
        ++next;
      }
    }
    return out;
  }

  bool is_watchable_empty(const std::vector<ValueId>& results) const {
    static const graph::OpId empty = graph::op_id("aten::empty.memory_format");
    static const graph::OpId empty_strided = graph::op_id("aten::empty_strided");
    if (entry_.functional != empty && entry_.functional != empty_strided) return false;
    const graph::TensorType& type = capture_.graph().type(results[0]);
    if (type.device.kind != graph::DeviceKind::Cpu) return false;
    int64_t elements = 1;
    for (const sym::ExprId e : type.sizes) {
      if (!capture_.env().pool().is_const(e)) return false;
      elements *= capture_.env().pool().const_value(e);
    }
    const auto is_known = [&](sym::ExprId stride) { return capture_.env().pool().is_const(stride); };
    if (!std::all_of(type.strides.begin(), type.strides.end(), is_known)) return false;
    return elements > 0 && elements * byte_size(type.dtype) <= kWatchedBytes;
  }

  // A float without a number yet, where the schema has one: another form of the operator takes a tensor there.
  bool scalar_is_tensor() {
    for (size_t i = 0; i < count_; ++i) {
      if (!argument(i).isSymFloat()) continue;
      const bool in_place = entry_.op_class == OpEntry::Class::InPlace;
      std::optional<at::Tensor> out = with_float_tensors(entry_.name, stack_, count_);
      if (out)
        finish({in_place && !out->is_same(argument(0).toTensor()) ? at::Tensor(argument(0).toTensor()).copy_(*out)
                                                                  : *out});
      return out.has_value();
    }
    return false;
  }

  // An integer of sizes, and with symbolic_numbers any, stays symbolic.
  bool symbolic_item() {
    const bool boolean = argument(0).toTensor().scalar_type() == at::kBool;
    if (!boolean && !at::isIntegralType(argument(0).toTensor().scalar_type(), false)) return false;
    const Arg value = to_graph(capture_, argument(0), ArgType::Tensor);
    const auto* tensor = std::get_if<ValueId>(&value);
    const auto numbers = tensor != nullptr ? capture_.symbolic_elements(*tensor) : std::nullopt;
    if (!numbers || numbers->size() != 1) return false;
    sym::ExprPool& pool = capture_.env().pool();
    const sym::ExprId found = numbers->at(0);
    const sym::ExprId truth = pool.is_boolean(found) ? found : pool.ne(found, pool.constant(0));
    finish({boolean ? at::Scalar(SymNode::make_bool(capture_.env_ptr(), truth))
                    : at::Scalar(SymNode::make_int(capture_.env_ptr(), numbers->at(0)))});
    return true;
  }

  // item(), bool(tensor), int(tensor): the value now, and a guard that it is the same at later calls.
  bool read_number() {
    static const graph::OpId item = graph::op_id("aten::_local_scalar_dense");
    if (entry_.functional != item) return false;
    if (symbolic_item()) return true;
    if (capture_.symbolic_booleans) abort_capture("a number read from tensor data, which is not kept as a symbol");
    if (capture_.before_flush) abort_capture("a number read from tensor data");  // a piece ends here
    const Arg value = to_graph(capture_, argument(0), ArgType::Tensor);
    finish({capture_.read_number(std::get<ValueId>(value))});
    return true;
  }

  // Its schema does not say so, but in training native_batch_norm writes the running statistics.
  bool batch_norm_in_training() {
    static const graph::OpId batch_norm = graph::op_id("aten::native_batch_norm"),
                             functional = graph::op_id("aten::_native_batch_norm_legit_functional");
    constexpr size_t kMean = 3, kVariance = 4, kTraining = 5;
    if (entry_.functional != batch_norm || !argument(kTraining).toBool()) return false;
    for (const size_t i : {kMean, kVariance})
      if (argument(i).isNone() || !argument(i).toTensor().defined()) return false;
    const at::Tensor mean = stand_in(kMean), variance = stand_in(kVariance);
    const std::vector<ValueId> results = capture_.call(functional, arguments(count_));
    capture_.write(*TraceTensor::from(mean), fit(results[3], *TraceTensor::from(mean)));
    capture_.write(*TraceTensor::from(variance), fit(results[4], *TraceTensor::from(variance)));
    std::vector<at::Tensor> tensors;
    for (size_t i = 0; i < 3; ++i) tensors.push_back(capture_.make_result(results[i]));
    finish(wrap(tensors));
    return true;
  }

  // Its schema does not say so, but what it gives shares the memory of its argument: who writes the one means both.
  // As the second step of a reshape its argument is a copy that nobody else has (possible_views.h).
  bool is_hidden_view() const {
    static const graph::OpId unsafe_view = graph::op_id("aten::_unsafe_view");
    return entry_.functional == unsafe_view && ViewOrCopy::current() == nullptr;
  }

  void functional() {
    if (is_hidden_view()) return view();
    if (read_number() || batch_norm_in_training()) return;
    const std::vector<ValueId> results = capture_.call(entry_.functional, arguments(count_));
    const uint64_t absent = capture_.absent_results;
    std::vector<at::Tensor> tensors;
    if (is_watchable_empty(results)) {
      tensors.push_back(capture_.make_watched_empty(results[0]));
    } else {
      for (const ValueId v : results) tensors.push_back(capture_.make_result(v));
    }
    if (ViewOrCopy::current() != nullptr) note_copy(tensors);
    finish(wrap(tensors, absent));
  }

  void note_copy(const std::vector<at::Tensor>& results) {
    static const graph::OpId clone = graph::op_id("aten::clone"), unsafe_view = graph::op_id("aten::_unsafe_view");
    if (entry_.functional != clone && entry_.functional != unsafe_view) return;
    capture_.note_copy(*TraceTensor::from(stand_in(0)), *TraceTensor::from(results[0]));
  }

  at::Tensor stand_in(size_t i) {
    const at::Tensor& tensor = argument(i).toTensor();
    return TraceTensor::from(tensor) != nullptr ? tensor : capture_.lift(tensor);
  }

  static graph::OpId as_strided() {
    static const graph::OpId op = graph::op_id("aten::as_strided");
    return op;
  }

  // Offset of a one-result view, from its operator. Views whose offset is the parent's need nothing.
  sym::ExprId view_offset(const TraceTensor& parent, const std::vector<Arg>& args) {
    sym::ExprPool& pool = capture_.env().pool();
    static const graph::OpId slice = graph::op_id("aten::slice.Tensor"), select = graph::op_id("aten::select.int"),
                             diagonal = graph::op_id("aten::diagonal");
    const graph::OpId op = entry_.functional;
    if (op == slice) return slice_offset(parent, args);
    if (op == select) {
      const size_t d = dim(parent, args[1]);
      return pool.add(parent.offset(), pool.mul(wrapped_index(parent, d, args[2]), parent.type().strides[d]));
    }
    if (op == as_strided())
      return std::holds_alternative<graph::None>(args[3]) ? parent.offset() : std::get<sym::ExprId>(args[3]);
    if (op == diagonal) return diagonal_offset(parent, args);
    return parent.offset();
  }
  // Counted in elements of the view, which may be of another size than the parent's.
  sym::ExprId rescaled(sym::ExprId offset, DType from, DType to) {
    sym::ExprPool& pool = capture_.env().pool();
    if (byte_size(from) == byte_size(to)) return offset;
    return pool.floor_div(pool.mul(offset, pool.constant(byte_size(from))), pool.constant(byte_size(to)));
  }
  // Eager computes these views when they are read; here they are values of their own, remade when the parent is
  // written.
  graph::OpId view_op() const {
    static const graph::OpId conj = graph::op_id("aten::_conj"), neg = graph::op_id("aten::_neg_view"),
                             conj_physical = graph::op_id("aten::conj_physical"), negated = graph::op_id("aten::neg");
    if (entry_.functional == conj) return conj_physical;
    return entry_.functional == neg ? negated : entry_.functional;
  }

  size_t dim(const TraceTensor& parent, const Arg& arg) const {
    const int64_t d = capture_.env().pool().const_value(capture_.env().simplify(std::get<sym::ExprId>(arg)));
    return static_cast<size_t>(d < 0 ? d + static_cast<int64_t>(parent.type().rank()) : d);
  }
  // As above for arguments that no shape rule has seen: the operator itself raises on what it rejects.
  size_t checked_dim(const TraceTensor& parent, const Arg& arg) {
    const size_t d = dim(parent, arg);
    if (d < parent.type().rank()) return d;
    generic_check();
    abort_capture(entry_.name + " along a dimension that is not there");
  }
  bool negative(sym::ExprId e) {
    sym::ExprPool& pool = capture_.env().pool();
    const std::optional<bool> answer =
        capture_.env().evaluate(pool.lt(e, pool.constant(0)), [] { return current_reason(); });
    if (!answer) abort_capture("an index that only data can give");
    return *answer;
  }
  sym::ExprId wrapped_index(const TraceTensor& parent, size_t d, const Arg& arg) {
    const sym::ExprId index = std::get<sym::ExprId>(arg);
    sym::ExprPool& pool = capture_.env().pool();
    if (!capture_.env().hint(index) && !capture_.env().known_true(pool.ge(index, pool.constant(0))))
      return ops::from_either_end(pool, index, parent.type().sizes[d]);
    return negative(index) ? capture_.env().pool().add(index, parent.type().sizes[d]) : index;
  }
  sym::ExprId slice_offset(const TraceTensor& parent, const std::vector<Arg>& args) {
    sym::ExprPool& pool = capture_.env().pool();
    if (std::holds_alternative<graph::None>(args[2])) return parent.offset();
    const size_t d = dim(parent, args[1]);
    const sym::ExprId given = std::get<sym::ExprId>(args[2]);
    const bool by_data = !capture_.env().hint(given) && !capture_.env().known_true(pool.ge(given, pool.constant(0)));
    sym::ExprId start =
        by_data ? ops::from_either_end(pool, given, parent.type().sizes[d]) : wrapped_index(parent, d, args[2]);
    start = pool.min(pool.max(start, pool.constant(0)), parent.type().sizes[d]);
    return pool.add(parent.offset(), pool.mul(capture_.env().simplify(start), parent.type().strides[d]));
  }
  sym::ExprId diagonal_offset(const TraceTensor& parent, const std::vector<Arg>& args) {
    sym::ExprPool& pool = capture_.env().pool();
    const sym::ExprId offset = std::get<sym::ExprId>(args[1]);
    if (!negative(offset))
      return pool.add(parent.offset(), pool.mul(offset, parent.type().strides[dim(parent, args[3])]));
    return pool.sub(parent.offset(), pool.mul(offset, parent.type().strides[dim(parent, args[2])]));
  }

  at::Tensor one_view(TraceTensor& parent, graph::OpId op, std::vector<Arg> args,
                      std::optional<std::vector<Extent>> within = std::nullopt) {
    const std::vector<ValueId> results = capture_.call(op, args);
    const OpEntry* outer = std::exchange(current_op, &entry_);
    const sym::ExprId offset = op == entry_.functional ? view_offset(parent, args) : parent.offset();
    current_op = outer;
    const DType dtype = capture_.graph().type(results[0]).dtype;
    // In inference mode, views of ordinary tensors are ordinary, and share their versions.
    std::optional<c10::InferenceMode> ordinary;
    if (c10::InferenceMode::is_enabled() && !argument(0).toTensor().is_inference()) ordinary.emplace(false);
    return capture_.make_view(parent, op, std::move(args), results[0], rescaled(offset, parent.type().dtype, dtype),
                              std::move(within));
  }

  // What a view by as_strided of `view` lies within (ViewChain).
  static std::optional<std::vector<Extent>> extents(const TraceTensor& view) {
    if (view.chain() == nullptr) return std::nullopt;
    std::vector<Extent> out = view.chain()->within;
    out.push_back({view.type().sizes, view.type().strides, view.offset()});
    return out;
  }

  // as_strided speaks of the storage, whatever view of it the argument is.
  at::Tensor memory_behind(const at::Tensor& view, std::vector<Arg>& args) {
    TraceTensor& trace = *TraceTensor::from(view);
    // What lies around an argument is no part of the program.
    if (capture_.is_callers(trace)) check_inside(trace, args);
    if (trace.chain() == nullptr) return view;
    if (std::holds_alternative<graph::None>(args[3])) args[3] = trace.offset();
    at::Tensor base = capture_.base_of(trace);
    args[0] = capture_.value_of(*TraceTensor::from(base));
    return base;
  }

  // Of a caller's tensor the program sees its own elements alone, and no more of the storage than the region that they
  // fill; where that lies in the storage differs from call to call.
  void check_inside(const TraceTensor& trace, const std::vector<Arg>& args) {
    sym::ExprPool& pool = capture_.env().pool();
    const at::Tensor base = capture_.base_of(trace);
    sym::ExprId last = trace.offset(), empty = pool.constant(0);
    if (const auto* offset = std::get_if<sym::ExprId>(&args[3])) {
      if (!capture_.starts_storage(trace)) abort_capture("as_strided at an offset in an argument's storage");
      last = *offset;
    }
    if (!base.unsafeGetTensorImpl()->is_non_overlapping_and_dense())
      abort_capture("as_strided on an argument with gaps");
    const auto &sizes = std::get<std::vector<sym::ExprId>>(args[1]),
               &strides = std::get<std::vector<sym::ExprId>>(args[2]);
    for (size_t d = 0; d < std::min(sizes.size(), strides.size()); ++d) {
      last = pool.add(last, pool.mul(pool.sub(sizes[d], pool.constant(1)), strides[d]));
      empty = pool.logical_or(empty, pool.eq(sizes[d], pool.constant(0)));
    }
    const sym::ExprId count = graph::numel(pool, TraceTensor::from(base)->type().sizes);
    const std::optional<bool> inside =
        capture_.env().evaluate(pool.logical_or(empty, pool.lt(last, count)), [] { return current_reason(); });
    if (!inside.value_or(false)) abort_capture("as_strided beyond an argument");
  }

  at::Tensor strided(const at::Tensor& of, std::vector<Arg> args) {
    std::optional<std::vector<Extent>> within = extents(*TraceTensor::from(of));
    const at::Tensor base = memory_behind(of, args);
    return one_view(*TraceTensor::from(base), entry_.functional, std::move(args), std::move(within));
  }

  void view() {
    at::Tensor base = stand_in(0);
    std::vector<Arg> args = arguments(count_);
    if (entry_.functional == as_strided()) return finish({strided(base, std::move(args))});
    TraceTensor& parent = *TraceTensor::from(base);
    if (arg_type(entry_.functional_handle->schema().returns()[0]) == ArgType::TensorList) return views(parent, args);
    if (entry_.functional_handle->schema().returns().size() != 1) abort_capture(entry_.name + " returns several views");
    finish({one_view(parent, view_op(), std::move(args))});
  }

  // split, unbind and their kin: each result is a slice or a selection of the parent.
  void views(TraceTensor& parent, const std::vector<Arg>& args) {
    static const graph::OpId unbind = graph::op_id("aten::unbind.int"), split = graph::op_id("aten::split.Tensor"),
                             split_sizes = graph::op_id("aten::split_with_sizes");
    sym::ExprPool& pool = capture_.env().pool();
    c10::List<at::Tensor> out;
    if (entry_.functional == unbind) {
      const size_t d = checked_dim(parent, args[1]);
      const int64_t n = pin(parent.type().sizes[d]);
      for (int64_t i = 0; i < n; ++i) out.push_back(select(parent, args[0], d, pool.constant(i)));
    } else if (entry_.functional == split || entry_.functional == split_sizes) {
      const size_t d = checked_dim(parent, args[2]);
      sym::ExprId start = pool.constant(0);
      for (const sym::ExprId size : pieces(parent, args, d)) {
        const sym::ExprId end = pool.add(start, size);
        out.push_back(slice(parent, args[0], d, start, end));
        start = end;
      }
    } else {
      abort_capture(entry_.name + " returns several views");
    }
    finish({out});
  }
  int64_t pin(sym::ExprId e) {
    const std::optional<int64_t> value = capture_.env().specialize(e, current_reason());
    if (!value) abort_capture("a number of results that only data can give");
    return *value;
  }
  // Sizes of the pieces of a split. How many there are is pinned; how long the last one is stays symbolic.
  std::vector<sym::ExprId> pieces(const TraceTensor& parent, const std::vector<Arg>& args, size_t d) {
    if (const auto* sizes = std::get_if<std::vector<sym::ExprId>>(&args[1])) {
      check_split(parent, args, *sizes, d);
      return *sizes;
    }
    sym::ExprPool& pool = capture_.env().pool();
    const sym::ExprId total = parent.type().sizes[d], piece = std::get<sym::ExprId>(args[1]);
    const sym::ExprId none = pool.eq(piece, pool.constant(0));
    const std::optional<bool> empty = capture_.env().evaluate(none, [] { return current_reason(); });
    if (!empty) abort_capture("a number of results that only data can give");
    if (*empty) {
      if (!decide_equal(total, piece)) (void)generic_check();
      return {total};
    }
    const int64_t count = std::max<int64_t>(1, pin(capture_.env().simplify(pool.ceil_div(total, piece))));
    std::vector<sym::ExprId> out(static_cast<size_t>(count - 1), piece);
    out.push_back(pool.sub(total, pool.mul(piece, pool.constant(count - 1))));
    return out;
  }
  void check_split(const TraceTensor& parent, const std::vector<Arg>& args, const std::vector<sym::ExprId>& sizes,
                   size_t d) {
    const sym::ExprId total = parent.type().sizes[d];
    sym::ExprPool& pool = capture_.env().pool();
    const sym::ExprId sum = sizes.empty() ? pool.constant(0) : pool.sum(sizes);
    const std::optional<bool> fits = capture_.env().evaluate(pool.eq(sum, total), [] { return current_reason(); });
    if (fits == false) (void)generic_check();
    if (!fits) assume_split(parent, args, sizes, d);
  }
  // Sizes that data gives. The operator itself stays in the graph for its errors, should the graph be run as it is.
  void assume_split(const TraceTensor& parent, const std::vector<Arg>& args, const std::vector<sym::ExprId>& sizes,
                    size_t d) {
    sym::ExprPool& pool = capture_.env().pool();
    std::vector<graph::TensorType> types(sizes.size(), parent.type());
    for (size_t i = 0; i < sizes.size(); ++i) {
      types[i].sizes[d] = sizes[i];
      capture_.env().assume(pool.ge(sizes[i], pool.constant(0)), "a size of a split, which data gives, is negative");
    }
    capture_.env().assume(pool.eq(pool.sum(sizes), parent.type().sizes[d]),
                          "the sizes of a split, which data gives, do not add up");
    capture_.graph().add_node(entry_.functional, args, std::move(types));
  }
  // Lets the operator itself raise on arguments that it rejects.
  bool generic_check() {
    capture_.call(entry_.functional, arguments(count_));
    return true;
  }
  at::Tensor slice(TraceTensor& parent, const Arg& self, size_t d, sym::ExprId start, sym::ExprId end) {
    sym::ExprPool& pool = capture_.env().pool();
    std::vector<Arg> args{self, pool.constant(static_cast<int64_t>(d)), start, end, pool.constant(1)};
    graph::TensorType type = parent.type();
    type.sizes[d] = pool.sub(end, start);
    return derived(parent, "aten::slice.Tensor", std::move(args), std::move(type), d, start);
  }
  at::Tensor select(TraceTensor& parent, const Arg& self, size_t d, sym::ExprId index) {
    sym::ExprPool& pool = capture_.env().pool();
    std::vector<Arg> args{self, pool.constant(static_cast<int64_t>(d)), index};
    graph::TensorType type = parent.type();
    type.sizes.erase(type.sizes.begin() + static_cast<long>(d));
    type.strides.erase(type.strides.begin() + static_cast<long>(d));
    return derived(parent, "aten::select.int", std::move(args), std::move(type), d, index);
  }
  at::Tensor derived(TraceTensor& parent, const char* op, std::vector<Arg> args, graph::TensorType type, size_t d,
                     sym::ExprId start) {
    sym::ExprPool& pool = capture_.env().pool();
    const graph::NodeId node = capture_.graph().add_node(graph::op_id(op), args, {std::move(type)});
    const sym::ExprId offset = pool.add(parent.offset(), pool.mul(start, parent.type().strides[d]));
    return capture_.make_view(parent, graph::op_id(op), std::move(args), capture_.graph().node(node).results[0],
                              offset);
  }

  // Sizes must agree and the result's category must not exceed the target's; else eager raises.
  ValueId fit(ValueId result, const TraceTensor& target) {
    graph::Graph& graph = capture_.graph();
    const graph::TensorType& type = graph.type(result);
    bool same = type.sizes.size() == target.type().sizes.size();
    for (size_t d = 0; same && d < type.sizes.size(); ++d) same = decide_equal(type.sizes[d], target.type().sizes[d]);
    if (!same)
      TORCH_CHECK(false, "output with shape ", shape_text(target.type()), " doesn't match the broadcast shape ",
                  shape_text(type));
    if (type.dtype == target.type().dtype) return result;
    TORCH_CHECK(category(type.dtype) <= category(target.type().dtype), "result type ", to_torch(type.dtype),
                " can't be cast to the desired output type ", to_torch(target.type().dtype));
    return capture_.call(graph::op_id("aten::_to_copy"), {result, target.type().dtype, graph::None{}, graph::None{},
                                                          graph::None{}, false, graph::None{}})[0];
  }
  bool decide_equal(sym::ExprId a, sym::ExprId b) {
    if (capture_.env().known_equal(a, b)) return true;
    return capture_.env().evaluate(capture_.env().pool().eq(a, b), [] { return current_reason(); }).value_or(false);
  }
  std::string shape_text(const graph::TensorType& type) {
    std::vector<int64_t> sizes;
    for (const sym::ExprId e : type.sizes) sizes.push_back(capture_.env().hint_or(e, -1));
    return c10::str(c10::IntArrayRef(sizes));
  }

  // Eager refuses to write elements that share their memory, which it tells by a stride of 0.
  void require_writable(const TraceTensor& target) {
    capture_.require_writable(target);
    sym::ExprPool& pool = capture_.env().pool();
    const graph::TensorType& type = target.type();
    for (size_t d = 0; d < type.rank(); ++d)
      if (capture_.env().known_equal(type.strides[d], pool.constant(0)) &&
          !decide_equal(type.sizes[d], pool.constant(1)))
        abort_capture(entry_.name + " writes elements that share their memory");
  }

  // Eager refuses to write memory that it reads elsewhere in the same operator.
  void check_overlap(const TraceTensor& target) {
    for (size_t i = 0; i < count_; ++i) {
      const TraceTensor* read = argument(i).isTensor() && argument(i).toTensor().defined()
                                    ? TraceTensor::from(argument(i).toTensor())
                                    : nullptr;
      if (read != nullptr && read != &target && capture_.overlaps_partly(target, *read))
        abort_capture(entry_.name + " writes memory that it reads elsewhere");
    }
  }

  void in_place() {
    at::Tensor self = argument(0).toTensor();
    at::Tensor target_tensor = stand_in(0);
    TraceTensor& target = *TraceTensor::from(target_tensor);
    require_writable(target);
    check_overlap(target);
    const size_t kept = entry_.functional_handle->schema().arguments().size();
    std::vector<Arg> args = arguments(std::min(count_, kept));
    if (args.size() < kept) append_defaults(args);
    const std::vector<ValueId> results = capture_.call(entry_.functional, std::move(args));
    capture_.write(target, fit(results[0], target));
    finish({self});
  }
  // A functional counterpart may take a trailing generator that the in-place form has not, or the reverse.
  void append_defaults(std::vector<Arg>& args) {
    const auto& schema = entry_.functional_handle->schema().arguments();
    while (args.size() < schema.size()) {
      const c10::Argument& a = schema[args.size()];
      if (!a.default_value()) abort_capture(entry_.name + " has no functional form with the same arguments");
      args.push_back(to_graph(capture_, *a.default_value(), arg_type(a)));
    }
  }

  void in_place_view() {
    at::Tensor self = argument(0).toTensor();
    TraceTensor* target = TraceTensor::from(self);
    if (target == nullptr || Guest::stand_in_of(self.unsafeGetTensorImpl()) != nullptr)
      abort_capture(entry_.name + " on a tensor from outside changes its shape for good");
    at::Tensor result = entry_.functional == as_strided() ? strided(self, arguments(count_))
                                                          : one_view(*target, entry_.functional, arguments(count_));
    target->become(*TraceTensor::from(result));
    finish({self});
  }

  void out() {
    const size_t kept = count_ - entry_.out_arguments;
    for (size_t i = kept; i < count_; ++i)
      if (argument(i).isTensor()) require_writable(*TraceTensor::from(stand_in(i)));
    const std::vector<ValueId> results = capture_.call(entry_.functional, arguments(kept));
    // Which dtypes an out argument may have differs from operator to operator, and meta kernels allow more.
    for (size_t i = 0; i < entry_.out_arguments; ++i)
      if (argument(kept + i).isTensor() &&
          capture_.graph().type(results.at(i)).dtype != TraceTensor::from(stand_in(kept + i))->type().dtype)
        abort_capture(entry_.name + " has an out argument of another dtype");
    std::vector<c10::IValue> outs;
    for (size_t i = 0; i < entry_.out_arguments; ++i) {
      if (argument(kept + i).isList()) abort_capture(entry_.name + " writes a list of tensors");
      at::Tensor given = argument(kept + i).toTensor();
      write_out(kept + i, results.at(i));
      outs.emplace_back(given);
    }
    finish(std::move(outs));
  }
  void write_out(size_t i, ValueId result) {
    at::Tensor target_tensor = stand_in(i);
    TraceTensor& target = *TraceTensor::from(target_tensor);
    check_overlap(target);
    const graph::TensorType& type = capture_.graph().type(result);
    bool same = type.sizes.size() == target.type().sizes.size();
    for (size_t d = 0; same && d < type.sizes.size(); ++d) same = decide_equal(type.sizes[d], target.type().sizes[d]);
    if (same) return capture_.write(target, fit(result, target));
    const sym::ExprId count = graph::numel(capture_.env().pool(), target.type().sizes);
    if (TraceTensor::from(argument(i).toTensor()) == nullptr || target.chain() != nullptr ||
        !capture_.env().pool().is_const(count, 0) || type.dtype != target.type().dtype)
      abort_capture(entry_.name + " resizes its out argument");
    target.become(*TraceTensor::from(capture_.make_result(result)));
  }

  static constexpr int64_t kWatchedBytes = 1 << 20;

  const OpEntry& entry_;
  Capture& capture_;
  Stack& stack_;
  size_t count_;
  const OpEntry* outer_op_;
};

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

class CaptureKernel final : public c10::OperatorKernel {
 public:
  explicit CaptureKernel(const c10::OperatorHandle& handle) : handle_(handle) {}

  void operator()(const c10::OperatorHandle&, c10::DispatchKeySet, Stack* stack) {
    Capture* capture = Capture::current();
    if (capture == nullptr) return run_beside_capture(handle_, *stack);
    if (capture->closed()) return run_natively(handle_, *capture, *stack);
    std::call_once(classified_, [&] { entry_ = std::make_unique<OpEntry>(classify(handle_)); });
    capture->set_location();
    // Of lists of tensors: ATen's kernel for the CPU does them one after another, by operators that arrive here.
    if (is_of_lists_on_cpu(*stack)) return handle_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
    try {
      const CaptureCosts::Clock clock(capture->counters.costs, entry_->name);
      return Call(*entry_, *capture, *stack).run();
    } catch (const InternalError&) {
      throw;
    } catch (const CaptureAbort& e) {
      capture->flush(e.what_without_backtrace());
    } catch (const std::exception& e) {
      // Most likely the arguments are bad: the operator itself says so in its own words.
      capture->arguments_did_not_fit = true;
      capture->flush(entry_->name + " was not accepted: " + first_line(e.what()));
    }
    run_natively(handle_, *capture, *stack);
  }

 private:
  bool is_of_lists_on_cpu(const Stack& stack) const {
    if (!std::string_view(entry_->name).starts_with("aten::_foreach_")) return false;
    const c10::IValue& first = stack[stack.size() - entry_->arg_types.size()];
    return first.isTensorList() && first.toTensorList().size() > 0 && first.toTensorList().get(0).device().is_cpu() &&
           handle_.hasComputedKernelForDispatchKey(c10::DispatchKey::CPU);
  }

  c10::OperatorHandle handle_;
  std::once_flag classified_;
  std::unique_ptr<OpEntry> entry_;
};

// Without autograd's keys (inference mode) this is where a layer arrives first.
class LayerKernel final : public c10::OperatorKernel {
 public:
  explicit LayerKernel(const c10::OperatorHandle& handle) : whole_(handle) {}
  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
    if (!is_kept_whole(op, *stack)) return run_in_steps(op, *stack);
    whole_(op, keys, stack);
  }

 private:
  CaptureKernel whole_;
};

// Operators seen but not yet given the kernel. The dispatcher calls listeners under its own lock, so the kernel is
// registered later, by install_pending().
class Registry : public c10::OpRegistrationListener {
 public:
  void onOperatorRegistered(const c10::OperatorHandle& handle) override {
    std::lock_guard lock(mutex_);
    pending_.push_back(handle);
    any_pending_ = true;
  }
  void onOperatorDeregistered(const c10::OperatorHandle& handle) override {
    std::lock_guard lock(mutex_);
    std::erase_if(pending_, [&](const c10::OperatorHandle& p) { return p.operator_name() == handle.operator_name(); });
  }

  void install_pending() {
    if (!any_pending_.load(std::memory_order_acquire)) return;
    std::lock_guard installing(install_mutex_);
    std::vector<c10::OperatorHandle> todo;
    {
      std::lock_guard lock(mutex_);
      todo.swap(pending_);
      any_pending_ = false;
    }
    for (const c10::OperatorHandle& handle : todo) install(handle);
  }

 private:
  void install(const c10::OperatorHandle& handle) {
    if (!handle.hasSchema()) return;
    const c10::OperatorName& name = handle.operator_name();
    const bool layer = is_recurrent_layer(name);
    if (handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) && !layer) return;
    if (handle.hasKernelForDispatchKey(kTraceKey)) return;
    const std::string ns = name.name.substr(0, name.name.find("::"));
    if (ns == "profiler" || ns == "c10d" || ns == "_caffe2") return;
    auto kernel = layer ? c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<LayerKernel>(handle))
                        : c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<CaptureKernel>(handle));
    // Without torch::Library, which would parse the name again: half of the time that it takes.
    registrations_.push_back(c10::Dispatcher::singleton().registerImpl(name, kTraceKey, std::move(kernel), std::nullopt,
                                                                       nullptr, "cresset: capture"));
    register_other_layouts(handle, registrations_);
  }

  std::mutex mutex_, install_mutex_;
  std::atomic<bool> any_pending_{false};
  std::vector<c10::OperatorHandle> pending_;
  std::deque<c10::RegistrationHandleRAII> registrations_;  // would take the kernels away when destroyed
};

}  // namespace

namespace {

Registry& registry() {
  static Registry* const one = [] {
    install_symbolic_composites();
    install_own_derivatives();
    // torch gives its own backends' autograd keys a fallback; without one, operators that have no autograd kernel (most
    // custom ones) would have nothing to run on a trace tensor.
    static torch::Library autograd(torch::Library::IMPL, "_", c10::DispatchKey::AutogradPrivateUse3, __FILE__,
                                   __LINE__);
    autograd.fallback(torch::autograd::basicAutogradNotImplementedFallback());
    install_other_layouts();
    auto* made = new Registry;  // lives as long as the dispatcher
    // The registration handle would unregister on destruction; it is never destroyed.
    new c10::RegistrationHandleRAII(
        c10::Dispatcher::singleton().addRegistrationListener(std::unique_ptr<c10::OpRegistrationListener>(made)));
    return made;
  }();
  return *one;
}

}  // namespace

void register_capture_kernels() {
  watch_overloads();
  registry().install_pending();
}

void install_capture_kernels() {
  static std::once_flag once;
  std::call_once(once, [] {
    set_reason_provider(&reason_now);
    watch_default_generator();
    register_random_fills();
  });
  register_capture_kernels();
}

}  // namespace cresset::bridge
