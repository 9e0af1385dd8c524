#include "frontend/guards/torch_settings.h"

#include <unordered_map>

#include "frontend/cpython/py_objects.h"

namespace cresset::frontend {
namespace {

// Functions of torch._C; names missing in this version are skipped.
constexpr const char* kAsked[] = {"_get_float32_matmul_precision",
                                  "_get_fp32_precision_getter",
                                  "_get_mkldnn_enabled",
                                  "_get_mkldnn_deterministic",
                                  "_get_onednn_allow_tf32",
                                  "_get_nnpack_enabled",
                                  "_get_cudnn_enabled",
                                  "_get_cudnn_benchmark",
                                  "_get_cudnn_deterministic",
                                  "_get_cudnn_allow_tf32",
                                  "_get_cublas_allow_tf32",
                                  "_get_cublas_allow_fp16_reduced_precision_reduction",
                                  "_get_cublas_allow_bf16_reduced_precision_reduction",
                                  "_get_cublas_allow_fp16_accumulation",
                                  "_get_cpu_allow_fp16_reduced_precision_reduction",
                                  "_get_flash_sdp_enabled",
                                  "_get_mem_efficient_sdp_enabled",
                                  "_get_math_sdp_enabled",
                                  "_get_cudnn_sdp_enabled",
                                  "_get_overrideable_sdp_enabled",
                                  "_get_fa3_sdp_enabled",
                                  "_get_math_sdp_allow_fp16_bf16_reduction",
                                  "_get_deterministic_fill_uninitialized_memory",
                                  "_get_qengine",
                                  "_get_warnAlways",
                                  "_get_thread_name",
                                  "_get_backcompat_broadcast_warn",
                                  "_get_backcompat_keepdim_warn",
                                  "_check_sparse_tensor_invariants",
                                  "_is_multithreading_enabled",
                                  "_is_view_replay_enabled",
                                  "get_num_threads",
                                  "get_num_interop_threads",
                                  "is_anomaly_enabled",
                                  "is_anomaly_check_nan_enabled"};
constexpr const char* kMade[] = {"_set_float32_matmul_precision",
                                 "_set_fp32_precision_setter",
                                 "_set_mkldnn_enabled",
                                 "_set_mkldnn_deterministic",
                                 "_set_onednn_allow_tf32",
                                 "_set_nnpack_enabled",
                                 "_set_cudnn_enabled",
                                 "_set_cudnn_benchmark",
                                 "_set_cudnn_deterministic",
                                 "_set_cudnn_allow_tf32",
                                 "_set_cublas_allow_tf32",
                                 "_set_cublas_allow_fp16_reduced_precision_reduction",
                                 "_set_cublas_allow_bf16_reduced_precision_reduction",
                                 "_set_cublas_allow_fp16_accumulation",
                                 "_set_cpu_allow_fp16_reduced_precision_reduction",
                                 "_set_sdp_use_flash",
                                 "_set_sdp_use_mem_efficient",
                                 "_set_sdp_use_math",
                                 "_set_sdp_use_cudnn",
                                 "_set_sdp_use_overrideable",
                                 "_set_sdp_use_fa3",
                                 "_set_sdp_priority_order",
                                 "_set_math_sdp_allow_fp16_bf16_reduction",
                                 "_set_linalg_preferred_backend",
                                 "_set_blas_preferred_backend",
                                 "_set_deterministic_fill_uninitialized_memory",
                                 "_set_qengine",
                                 "_set_warnAlways",
                                 "_set_thread_name",
                                 "_set_backcompat_broadcast_warn",
                                 "_set_backcompat_keepdim_warn",
                                 "_set_check_sparse_tensor_invariants",
                                 "set_anomaly_enabled"};

// Kept for the whole process.
const std::unordered_map<PyObject*, Setting>& table() {
  static const auto& known = *[] {
    auto* const out = new std::unordered_map<PyObject*, Setting>;
    const auto add = [&](PyObject* module, const char* name, Setting setting) {
      if (PyObject* const function = PyObject_GetAttrString(module, name)) return void(out->emplace(function, setting));
      PyErr_Clear();
    };
    const PyRef torch = import_module("torch._C");
    for (const char* name : kAsked) add(torch.get(), name, Setting::Asked);
    for (const char* name : kMade) add(torch.get(), name, Setting::Made);
    const PyRef autograd = import_module("torch._C._autograd");
    for (const char* name : {"_profiler_enabled", "_saved_tensors_hooks_is_enabled"})
      add(autograd.get(), name, Setting::Asked);
    // CPython settings: recursion limit, identity of the thread, registrations of abstract classes.
    const PyRef sys = import_module("sys"), thread = import_module("_thread"), abc = import_module("_abc");
    add(sys.get(), "getrecursionlimit", Setting::Asked);
    for (const char* name : {"get_ident", "get_native_id"}) add(thread.get(), name, Setting::Asked);
    add(abc.get(), "get_cache_token", Setting::Asked);
    return out;
  }();
  return known;
}

}  // namespace

Setting setting_of(PyObject* callable) {
  const auto found = table().find(callable);
  return found != table().end() ? found->second : Setting::None;
}

void each_setting(const std::function<void(PyObject*)>& f) {
  for (const auto& [function, _] : table()) f(function);
}

}  // namespace cresset::frontend
