module @jit_running_mean attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<5xf32>) -> (tensor<f32> {jax.result_info = "result[0][0]"}, tensor<f32> {jax.result_info = "result[0][1]"}, tensor<5xf32> {jax.result_info = "result[1]"}) {
    %0 = stablehlo.constant dense<0.0> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<5xf32>
    %2 = stablehlo.constant dense<0> : tensor<i32>
    %25:5 = "stablehlo.while"(%2, %0, %0, %arg0, %1) ({
    ^bb0(%3: tensor<i32>, %4: tensor<f32>, %5: tensor<f32>, %6: tensor<5xf32>, %7: tensor<5xf32>):
      %8 = stablehlo.constant dense<5> : tensor<i32>
      %9 = stablehlo.compare LT, %3, %8, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %9 : tensor<i1>
    }, {
    ^bb0(%10: tensor<i32>, %11: tensor<f32>, %12: tensor<f32>, %13: tensor<5xf32>, %14: tensor<5xf32>):
      %15 = stablehlo.constant dense<1> : tensor<i32>
      %16 = stablehlo.dynamic_slice %13, %10, sizes = [1] : (tensor<5xf32>, tensor<i32>) -> tensor<1xf32>
      %17 = stablehlo.reshape %16 : (tensor<1xf32>) -> tensor<f32>
      %18 = stablehlo.add %11, %17 : tensor<f32>
      %19 = stablehlo.constant dense<1.0> : tensor<f32>
      %20 = stablehlo.add %12, %19 : tensor<f32>
      %21 = stablehlo.divide %18, %20 : tensor<f32>
      %22 = stablehlo.reshape %21 : (tensor<f32>) -> tensor<1xf32>
      %23 = stablehlo.dynamic_update_slice %14, %22, %10 : (tensor<5xf32>, tensor<1xf32>, tensor<i32>) -> tensor<5xf32>
      %24 = stablehlo.add %10, %15 : tensor<i32>
      stablehlo.return %24, %18, %20, %13, %23 : tensor<i32>, tensor<f32>, tensor<f32>, tensor<5xf32>, tensor<5xf32>
    }) : (tensor<i32>, tensor<f32>, tensor<f32>, tensor<5xf32>, tensor<5xf32>) -> (tensor<i32>, tensor<f32>, tensor<f32>, tensor<5xf32>, tensor<5xf32>)
    return %25#1, %25#2, %25#4 : tensor<f32>, tensor<f32>, tensor<5xf32>
  }
}
