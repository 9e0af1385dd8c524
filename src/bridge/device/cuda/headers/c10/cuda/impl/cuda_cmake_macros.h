// Made by the build of torch with CUDA; builds without CUDA lack it.
#pragma once

#define C10_CUDA_BUILD_SHARED_LIBS
