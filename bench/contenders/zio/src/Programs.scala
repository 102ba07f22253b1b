/* The nine tests of the fiber table in ZIO 2, as fast as its users can have them.
 *
 * Found faster than what one would write first, and so taken: no list of root fibers; a program that is to run
 * elsewhere shifts there and stays, where `onExecutor` and `ZIO.blocking` come back to the default pool at the
 * end; also the 16 fibers of the default pool begin on it and not in the calling thread. Sums are Long: exact up
 * to 0..20, in one word, where JavaScript needs two.
 */
import java.util.concurrent.{ExecutorService, Executors}
import scala.concurrent.duration.Duration
import scala.concurrent.{Await, ExecutionContext, Future}
import zio.{Executor, Runtime, RuntimeFlag, UIO, Unsafe, ZIO}

object Programs {

  /** One operation: the sum for numbers up to `num`, by so many fibers where it is dealt to fibers. */
  type Program = (Int, Int) => Long

  def zioVersion: String = classOf[Runtime[Any]].getPackage.getImplementationVersion

  private val runtime = Unsafe.unsafe { implicit unsafe =>
    Runtime.unsafe.fromLayer(Runtime.disableFlags(RuntimeFlag.FiberRoots))
  }
  private val cached = Executors.newCachedThreadPool()
  private val stealing = Executors.newWorkStealingPool()
  private val executors = Map(
    "default" -> runOnce(ZIO.executor),
    "blocking" -> runOnce(ZIO.blockingExecutor),
    "cached" -> Executor.fromJavaExecutor(cached),
    "work-stealing" -> Executor.fromJavaExecutor(stealing)
  )

  /** By the names that rows have. */
  val all: Map[String, Program] = {
    val one: Map[String, Program] = Map(
      "future, work-stealing" -> futures(stealing),
      "sequential, default" -> ((num, _) => runOnce(steps(num)))
    )
    val elsewhere = (executors - "default").map { case (name, executor) =>
      s"sequential, $name" -> ((num: Int, _: Int) => runOnce(ZIO.shift(executor) *> whole(num)))
    }
    val fibers = executors.map { case (name, executor) =>
      s"fibers, $name" -> ((num: Int, count: Int) => runOnce(ZIO.shift(executor) *> dealt(num, count)))
    }
    one ++ elsewhere ++ fibers
  }

  private def runOnce[A](effect: UIO[A]): A = Unsafe.unsafe { implicit unsafe =>
    runtime.unsafe.run(effect).getOrThrowFiberFailure()
  }

  /** A step for each number. */
  private def steps(num: Int): UIO[Long] =
    ZIO.foldLeft(0 to num)(0L)((sum, k) => ZIO.succeed(sum + factorial(k)))

  private def whole(num: Int): UIO[Long] = ZIO.succeed(partialSum(0, 1, num))

  private def dealt(num: Int, count: Int): UIO[Long] =
    ZIO
      .foreach((0 until count).toList)(first => ZIO.succeed(partialSum(first, count, num)).fork)
      .flatMap(fibers => ZIO.foldLeft(fibers)(0L)((sum, fiber) => fiber.join.map(_ + sum)))

  private def futures(pool: ExecutorService): Program = {
    implicit val context: ExecutionContext = ExecutionContext.fromExecutorService(pool)
    (num, _) => Await.result(Future.traverse((0 to num).toList)(k => Future(factorial(k))).map(_.sum), Duration.Inf)
  }

  private def factorial(k: Int): Long = {
    var product = 1L
    var factor = 2
    while (factor <= k) {
      product *= factor
      factor += 1
    }
    product
  }

  private def partialSum(first: Int, stride: Int, num: Int): Long = {
    var sum = 0L
    var k = first
    while (k <= num) {
      sum += factorial(k)
      k += stride
    }
    sum
  }
}
