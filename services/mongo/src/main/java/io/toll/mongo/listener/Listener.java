package io.toll.mongo.listener;

import de.bwaldvogel.mongo.MongoBackend;
import de.bwaldvogel.mongo.wire.MongoDatabaseHandler;
import de.bwaldvogel.mongo.wire.MongoWireMessageEncoder;
import de.bwaldvogel.mongo.wire.MongoWireProtocolHandler;
import de.bwaldvogel.mongo.wire.MongoWireReplyEncoder;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.group.ChannelGroup;
import io.netty.channel.group.DefaultChannelGroup;
import io.netty.channel.nio.NioIoHandler;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.handler.ssl.ClientAuth;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.handler.ssl.SslProvider;
import io.netty.util.concurrent.GlobalEventExecutor;
import io.toll.mongo.clients.Clients;
import java.io.File;
import java.net.InetSocketAddress;
import java.time.Duration;
import javax.net.ssl.SSLException;

/**
 * Turns connections over mutual TLS into requests to a backend.
 *
 * <p>It stands where {@code de.bwaldvogel.mongo.MongoServer} would: that one's {@code enableSsl} makes a context that
 * asks clients for nothing, keeps it private and lets nobody at its pipeline. The codec and the handler of requests
 * are public, so this pipeline is the same but for the TLS in front.
 */
public final class Listener implements AutoCloseable {
    /**
     * No session is resumed, as with {@code mongod}: each shows both certificates anew, so that one that has expired
     * is seen. The JDK sends no tickets that would hold longer than the 7 days of RFC 8446, section 4.6.1.
     */
    private static final Duration LONGER_THAN_A_TICKET = Duration.ofDays(8);

    private final EventLoopGroup threads;
    private final Channel channel;

    private Listener(EventLoopGroup threads, Channel channel) {
        this.threads = threads;
        this.channel = channel;
    }

    /**
     * TLS in which both sides show certificates, the clients' of {@code authority}.
     *
     * @throws SSLException when the files do not make one
     */
    public static SslContext mutualTls(File certificate, File key, File authority) throws SSLException {
        try {
            return SslContextBuilder.forServer(certificate, key)
                    .sslProvider(SslProvider.JDK)
                    .trustManager(authority)
                    .clientAuth(ClientAuth.REQUIRE)
                    .protocols("TLSv1.3")
                    .sessionTimeout(LONGER_THAN_A_TICKET.toSeconds())
                    .build();
        } catch (IllegalArgumentException why) {
            String files = certificate + ", " + key + " and " + authority;
            throw new SSLException("cannot use " + files + ": " + why.getMessage(), why);
        }
    }

    /** Takes connections at {@code address} when this returns. */
    public static Listener start(InetSocketAddress address, SslContext tls, MongoBackend backend, Clients clients) {
        EventLoopGroup threads = new MultiThreadIoEventLoopGroup(NioIoHandler.newFactory());
        ChannelGroup connections = new DefaultChannelGroup("connections", GlobalEventExecutor.INSTANCE);
        ServerBootstrap bootstrap = new ServerBootstrap()
                .group(threads)
                .channel(NioServerSocketChannel.class)
                .childOption(ChannelOption.TCP_NODELAY, true)
                .childHandler(new ChannelInitializer<SocketChannel>() {
                    @Override
                    protected void initChannel(SocketChannel connection) {
                        connection.pipeline().addLast(
                                tls.newHandler(connection.alloc()),
                                clients.witness(),
                                new MongoWireReplyEncoder(),
                                new MongoWireMessageEncoder(),
                                new MongoWireProtocolHandler(),
                                new MongoDatabaseHandler(backend, connections),
                                new Ending());
                    }
                });
        ChannelFuture bound = bootstrap.bind(address).awaitUninterruptibly();
        if (!bound.isSuccess()) {
            threads.shutdownGracefully();
            Throwable why = bound.cause();
            throw new IllegalStateException("cannot listen on " + address + ": " + why.getMessage(), why);
        }
        return new Listener(threads, bound.channel());
    }

    /** Where it listens. */
    public InetSocketAddress address() {
        return (InetSocketAddress) channel.localAddress();
    }

    @Override
    public void close() {
        channel.close().syncUninterruptibly();
        threads.shutdownGracefully();
    }
}
