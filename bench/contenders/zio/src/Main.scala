/* The process of ZIO in the fiber table: runs slices by order, one at a time.
 *
 * It reads lines of `program, num, fibers, ms, clock` with tabs between them and answers each with one line of
 * JSON. It goes when its input ends.
 */
import java.lang.management.ManagementFactory
import scala.io.StdIn

object Main {
  private val system =
    ManagementFactory.getOperatingSystemMXBean.asInstanceOf[com.sun.management.OperatingSystemMXBean]

  def main(words: Array[String]): Unit = {
    println(hello)
    Iterator.continually(StdIn.readLine()).takeWhile(_ != null).foreach(line => println(answer(line)))
    sys.exit(0) // the JDK's pools would keep it
  }

  private def hello: String = {
    val zio = s"ZIO ${Programs.zioVersion}, Java ${System.getProperty("java.version")}"
    val names = Programs.all.keys.map(name => s""""$name"""").mkString(",")
    val sections = List("future" -> s"Scala's Future, $zio", "sequential" -> zio, "fibers" -> zio)
    val notes = sections.map { case (section, note) => s""""$section":"$note"""" }.mkString(",")
    s"""{"programs":[$names],"notes":{$notes}}"""
  }

  private def answer(line: String): String = {
    val Array(program, num, fibers, ms, clock) = line.split('\t')
    val run = Programs.all(program)
    val slice = new Slice(run, num.toInt, fibers.toInt, clock == "cpu")
    val seconds = ms.toDouble / 1000
    try {
      slice.go(seconds / 5)
      val (count, wall, cpu) = slice.go(seconds)
      s"""{"test":"$program","n":$num,"count":$count,"seconds":$wall,"cpuSeconds":$cpu}"""
    } catch {
      case Wrong(got, expected) =>
        s"""{"wrong":{"work":"$program 0..$num","got":"$got","expected":"$expected"}}"""
    }
  }

  private final case class Wrong(got: Long, expected: Long) extends RuntimeException

  private final class Slice(run: Programs.Program, num: Int, fibers: Int, byCpu: Boolean) {
    /** Modulo 2 ** 64, as Long counts: from 21! on that is not all of it. */
    private val expected = (0 to num).map(k => (1 to k).map(BigInt(_)).product).sum.toLong

    /** Runs it again and again for so long: how often, and what that took by the wall's clock and of CPU. */
    def go(secondsMin: Double): (Long, Double, Double) = {
      val (wallBegun, cpuBegun) = (System.nanoTime(), system.getProcessCpuTime)
      var count = 0L
      while (true) {
        some()
        count += 64
        val wall = (System.nanoTime() - wallBegun) / 1e9
        val cpu = if (byCpu || wall >= secondsMin) (system.getProcessCpuTime - cpuBegun) / 1e9 else 0.0
        if ((if (byCpu) cpu else wall) >= secondsMin) return (count, wall, cpu)
      }
      throw new AssertionError
    }

    private def some(): Unit = {
      var turn = 0
      while (turn < 64) {
        val sum = run(num, fibers)
        if (sum != expected) throw Wrong(sum, expected)
        turn += 1
      }
    }
  }
}
