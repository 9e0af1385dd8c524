#include "bridge/aten/cuda_setup.h"

#include <ATen/Context.h>
#include <dlfcn.h>
#include <glob.h>

#include "base/options.h"
#include "runtime/cuda/cuda_device.h"

namespace cresset::bridge {
namespace {

using codegen::nvptx::NvptxBackend;

// The folders in which CUDA builds of torch keep nvJitLink: torch's own, and those of NVIDIA's packages beside it.
std::vector<std::string> library_folders() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&at::globalContext), &info) == 0 || info.dli_fname == nullptr) return {};
  const std::string file = info.dli_fname;
  const std::string torch = file.substr(0, file.rfind('/'));
  std::vector<std::string> out{torch};
  glob_t found{};
  if (glob((torch + "/../../nvidia/*/lib").c_str(), GLOB_ONLYDIR, nullptr, &found) == 0)
    out.insert(out.end(), found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return out;
}

Result<bool> open_cuda() {
  if (NvptxBackend::get().is_configured()) return true;
  if (!option_flag(Option::CUDA))
    return Fallback{FallbackReason::CodegenFailed, "CRESSET_CUDA=0: programs on CUDA tensors run eagerly", ""};
  if (!at::globalContext().hasCUDA()) return Fallback{FallbackReason::CodegenFailed, "torch has no CUDA device", ""};
  const auto& driver = runtime::cuda::Driver::get();
  if (!driver.ok()) return driver.fallback();
  CRESSET_TRY(std::shared_ptr<runtime::GpuDevice> device, runtime::cuda::CudaDevice::open(*driver, 0));
  NvptxBackend::get().configure({.device = std::move(device), .library_folders = library_folders()});
  return true;
}

}  // namespace

const Result<bool>& set_up_cuda() {
  static const auto* const done = new Result<bool>(open_cuda());
  return *done;
}

void use_gpu(codegen::nvptx::NvptxOptions options) { NvptxBackend::get().configure(std::move(options)); }

}  // namespace cresset::bridge
